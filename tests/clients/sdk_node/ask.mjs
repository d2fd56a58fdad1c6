// openai-node as programs use it: one question, `whole` or `streamed`; an error ends the program.

import { OpenAI } from "openai-6";

const question = "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?";
const messages = [
  { role: "system", content: "You solve word problems. End with a line `ANSWER: <number>`." },
  { role: "user", content: question },
];
const sdk = new OpenAI();
if (process.argv[2] === "streamed") {
  let said = "";
  const stream = await sdk.chat.completions.create({ model: "gpt-4o-mini", messages, stream: true });
  for await (const chunk of stream) said += chunk.choices[0]?.delta.content ?? "";
  console.log(said);
} else {
  const completion = await sdk.chat.completions.create({ model: "gpt-4o-mini", messages });
  console.log(completion.choices[0].message.content);
}
