"""The same session stores behind other people's interfaces: `openai_agents.py`, `langchain.py`.

Neither library is imported before it is used. What a turn has no place for is `envelope.py`.
"""
