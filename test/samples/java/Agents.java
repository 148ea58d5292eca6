import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.ObjectMappers;
import com.openai.models.beta.agents.AgentSession;
import com.openai.models.beta.agents.AgentSessionEvent;
import com.openai.models.beta.agents.AgentToolParam;
import com.openai.models.beta.agents.sessions.SessionCreateParams;
import java.nio.file.Path;

/**
 * Starts a session with the question given, answers its calls with the sample, and prints the session's id when the turn
 * has ended: {@code java Agents stream|retrieve TOOL-FILE QUESTION}.
 */
public final class Agents {
  private Agents() {}

  public static void main(String[] args) throws Exception {
    var tool = ObjectMappers.jsonMapper().readValue(Path.of(args[1]).toFile(), AgentToolParam.class);
    var start =
        SessionCreateParams.builder()
            .agent(SessionCreateParams.Agent.builder().model("gpt-6-astra").addTool(tool).build())
            .environmentNone()
            .input(args[2])
            .build();
    var client = OpenAIOkHttpClient.fromEnv();
    try {
      System.out.println(args[0].equals("stream") ? stream(client, start) : retrieve(client, start));
    } finally {
      client.close();
    }
  }

  private static String stream(OpenAIClient client, SessionCreateParams start) throws Exception {
    String sessionId = null;
    try (var response = client.beta().agents().sessions().createStreaming(start)) {
      for (var event : (Iterable<AgentSessionEvent>) response.stream()::iterator) {
        if (event.isRequiresAction()) {
          var session = event.asRequiresAction().session();
          sessionId = session.id();
          answerAll(client, session);
        }
      }
    }
    return sessionId;
  }

  private static String retrieve(OpenAIClient client, SessionCreateParams start) throws Exception {
    var session = client.beta().agents().sessions().create(start);
    for (var answered = false; !session.status().equals(AgentSession.Status.IDLE) || !answered; ) {
      if (session.status().equals(AgentSession.Status.REQUIRES_ACTION)) {
        answerAll(client, session);
        answered = true;
      }
      Thread.sleep(20);
      session = client.beta().agents().sessions().retrieve(session.id());
    }
    return session.id();
  }

  private static void answerAll(OpenAIClient client, AgentSession session) throws Exception {
    for (var action : session.requiredActions()) {
      ReturnResult.returnResult(client, session.id(), action.asFunctionCall());
    }
  }
}
