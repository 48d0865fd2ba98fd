"""Memory behind HTTP: `token.py` says whose request it is, `middleware.py` holds every request to that, `app.py` is a
small application on top, and `server.py` runs one on a free port of this machine."""
