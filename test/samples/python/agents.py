"""Answers the calls of a session with the sample, and prints the session's id when the turn has ended.

python agents.py stream|retrieve TOOL-FILE QUESTION
"""

import json
import sys
import time
from pathlib import Path

from openai import OpenAI
from return_result import return_result

how, tool_file, question = sys.argv[1:]
tool = json.loads(Path(tool_file).read_text(encoding="utf-8"))
client = OpenAI()
start = {
    "agent": {"model": "gpt-6-astra", "tools": [tool]},
    "environment": {"type": "none"},
    "input": question,
}


def answer_all(session):
    for action in session.required_actions:
        return_result(client, session.id, action)


def stream():
    session_id = None
    for event in client.beta.agents.sessions.create(**start, stream=True):
        if event.type == "agent.session.requires_action":
            session_id = event.session.id
            answer_all(event.session)
    return session_id


def retrieve():
    session = client.beta.agents.sessions.create(**start)
    answered = False
    while session.status != "idle" or not answered:
        if session.status == "requires_action":
            answer_all(session)
            answered = True
        time.sleep(0.02)
        session = client.beta.agents.sessions.retrieve(session.id)
    return session.id


print(stream() if how == "stream" else retrieve())
