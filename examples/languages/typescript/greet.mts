// Answers greet_typescript, one of the five languages of callfan demo --languages.
import { Executor } from "callfan";
import { z } from "zod";

const ex = new Executor({ pool: "greeters-typescript" });

ex.function(
  "greet_typescript",
  {
    description: "Greet somebody from TypeScript.",
    input: z.object({ name: z.string().describe("who is greeted") }),
    effects: "none",
  },
  ({ name }) => `Hello, ${name}, from TypeScript on Node ${process.versions.node}.`,
);

await ex.run();
