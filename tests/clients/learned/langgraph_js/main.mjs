// LangGraph.js: a planner, then two solvers at once that ask the same, then a judge over both answers.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";

const PROBLEM = "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?";
const SOLVE = "You solve word problems. End with a line `ANSWER: <number>`.";
const model = new ChatOpenAI({ model: "gpt-4o-mini" });

const State = Annotation.Root({
  problem: Annotation(),
  plan: Annotation(),
  answers: Annotation({ reducer: (all, more) => all.concat(more), default: () => [] }),
  verdict: Annotation(),
});

async function ask(system, text) {
  const said = await model.invoke([
    { role: "system", content: system },
    { role: "user", content: text },
  ]);
  return said.content;
}

const solve = async (state) => ({ answers: [await ask(SOLVE, `${state.problem}\n\nPlan:\n${state.plan}`)] });
const graph = new StateGraph(State)
  .addNode("planner", async (state) => ({ plan: await ask("You plan the work in numbered steps.", state.problem) }))
  .addNode("solver_one", solve)
  .addNode("solver_two", solve)
  .addNode("judge", async (state) => ({
    verdict: await ask("You judge two solutions and repeat the right answer.", `${state.problem}\n\n${state.answers.join("\n\n")}`),
  }))
  .addEdge(START, "planner")
  .addEdge("planner", "solver_one")
  .addEdge("planner", "solver_two")
  .addEdge(["solver_one", "solver_two"], "judge")
  .addEdge("judge", END)
  .compile();

const done = await graph.invoke({ problem: process.argv[2] ?? PROBLEM });
console.log("FINAL:", done.verdict);
