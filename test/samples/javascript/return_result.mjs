// Return a function result: the sample answers one required action of a session of the Agents API.

import { getCustomer } from "./get_customer.mjs";

export async function returnResult(client, sessionId, action) {
  // sample: return a function result
  const result = {
    turn_id: action.turn_id,
    call_id: action.call_id,
  };
  let outcome;

  outcome = {
    success: true,
    output: JSON.stringify(getCustomer(action.arguments)),
  };

  await client.beta.agents.sessions.events.create(sessionId, {
    events: [
      { type: "agent.session.input.tool_result", ...result, ...outcome },
    ],
  });
  // end of sample
}
