// From a file to a chat in a page: choose a GGUF file, and talk with the model in it. Serve this folder
// with a bundler: `npx vite examples/chat`.

import { loadModel } from 'sinter/llm';

const [file, form, line, said] = ['file', 'form', 'line', 'said'].map((id) => document.getElementById(id));
// What writes conversations down for a model is a package of its own.
const packages = { jinja: () => import('@huggingface/jinja') };
const messages = [];
let model;

file.addEventListener('change', async () => {
  const onProgress = ({ loaded, total }) => (said.textContent = `${Math.round((100 * loaded) / total)} %`);
  model = await loadModel(file.files[0], { contextLength: 2048, onProgress, packages });
  said.textContent = 'What do you want to say?';
});
form.addEventListener('submit', async (event) => {
  event.preventDefault();
  messages.push({ role: 'user', content: line.value });
  // What stood there goes, also where the model has nothing to say.
  let answer = (said.textContent = '');
  for await (const piece of model.chat(messages)) said.textContent = answer += piece;
  messages.push({ role: 'assistant', content: answer });
});
