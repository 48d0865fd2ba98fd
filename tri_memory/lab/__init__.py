"""What only notebooks need: data sets, measurements, plots, panels, exercises."""
