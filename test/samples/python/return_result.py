"""Return a function result: the sample answers one required action of a session of the Agents API."""

from get_customer import get_customer


def return_result(client, session_id, action):
    # sample: return a function result
    import json

    action = action.to_dict()

    result = {
        "type": "agent.session.input.tool_result",
        "turn_id": action["turn_id"],
        "call_id": action["call_id"],
    }

    output = get_customer(action["arguments"])
    result.update(success=True, output=json.dumps(output))

    client.beta.agents.sessions.events.create(session_id, events=[result])
    # end of sample
