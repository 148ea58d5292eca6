import com.fasterxml.jackson.databind.json.JsonMapper;
import com.openai.client.OpenAIClient;
import com.openai.models.beta.agents.AgentSession;
import com.openai.models.beta.agents.AgentSessionInputParam;
import com.openai.models.beta.agents.sessions.events.EventCreateParams;

/** Return a function result: the sample answers one required action of a session of the Agents API. */
final class ReturnResult {
  private ReturnResult() {}

  static void returnResult(
      OpenAIClient client, String sessionId, AgentSession.RequiredAction.FunctionCall action) throws Exception {
    // sample: return a function result
    var json = new JsonMapper();

    var result =
        AgentSessionInputParam.AgentSessionInputToolResult.builder()
            .turnId(action.turnId())
            .callId(action.callId());
    var arguments = json.valueToTree(action._arguments());

    boolean found = arguments.path("customer_id").asText().equals("123");
    var output = json.createObjectNode().put("found", found);
    if (found)
      output.putObject("customer").put("name", "Example Customer").put("plan", "pro");
    else output.putNull("customer");
    result.success(true).output(json.writeValueAsString(output));

    client
        .beta()
        .agents()
        .sessions()
        .events()
        .create(
            EventCreateParams.builder()
                .sessionId(sessionId)
                .addEvent(result.build())
                .build());
    // end of sample
  }
}
