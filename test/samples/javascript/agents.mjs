// Starts a session with the question given, answers its calls with the sample, and prints the session's id when the
// turn has ended: node agents.mjs stream|retrieve TOOL-FILE QUESTION

import { readFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";

import OpenAI from "openai";

import { returnResult } from "./return_result.mjs";

const [how, toolFile, question] = process.argv.slice(2);
const tool = JSON.parse(await readFile(toolFile, "utf8"));
const client = new OpenAI();
const start = {
  agent: { model: "gpt-6-astra", tools: [tool] },
  environment: { type: "none" },
  input: question,
};

async function answerAll(session) {
  for (const action of session.required_actions) {
    await returnResult(client, session.id, action);
  }
}

async function stream() {
  let sessionId;
  for await (const event of await client.beta.agents.sessions.create({ ...start, stream: true })) {
    if (event.type === "agent.session.requires_action") {
      sessionId = event.session.id;
      await answerAll(event.session);
    }
  }
  return sessionId;
}

async function retrieve() {
  let session = await client.beta.agents.sessions.create(start);
  let answered = false;
  while (session.status !== "idle" || !answered) {
    if (session.status === "requires_action") {
      await answerAll(session);
      answered = true;
    }
    await wait(20);
    session = await client.beta.agents.sessions.retrieve(session.id);
  }
  return session.id;
}

console.log(await (how === "stream" ? stream() : retrieve()));
