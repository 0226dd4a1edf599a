// `sinter serve`: a language model behind OpenAI's interface, for clients on this machine or others.

import { once } from 'node:events';
import { basename } from 'node:path';
import { text, wholeNumber, type Command } from '../../command.ts';
import { draftOptions, modelOptions, modelPath, withModel } from '../options.ts';
import { modelServer } from './server.ts';

export const serveCommand: Command = {
  name: 'serve',
  about: "serve a language model over HTTP, with OpenAI's interface",
  details:
    'Answers /v1/chat/completions and /v1/completions (whole, or as server-sent events), /v1/embeddings, /v1/models and\n' +
    '/health. Texts are generated in parallel, each with a cache of its own. If a client disconnects, its text ends.',
  operand: {
    name: 'model',
    value: 'MODEL',
    about: 'a GGUF file (of several, the first), or a folder of Hugging Face',
  },
  options: {
    host: { type: 'string', value: 'HOST', about: 'the address to listen on (default 127.0.0.1)' },
    port: { type: 'string', value: 'N', about: 'the port (default 8080; 0: any free port)' },
    name: { type: 'string', value: 'NAME', about: 'what clients call the model (default: the file’s name)' },
    parallel: { type: 'string', value: 'N', about: 'texts that are generated in parallel (default 2)' },
    queue: {
      type: 'string',
      value: 'N',
      about: 'requests that may wait; others get 429 (default 16)',
    },
    ...draftOptions,
    ...modelOptions,
  },
  examples: ['sinter serve model.gguf', 'sinter serve model.gguf --port 8000 --parallel 4'],
  run: async (values, output) => {
    const path = modelPath('serve', values);
    const host = text(values, 'host') ?? '127.0.0.1';
    const port = wholeNumber(values, 'port', 8080, 0);
    const parallel = wholeNumber(values, 'parallel', 2, 1);
    const queue = wholeNumber(values, 'queue', 16, 0);
    const name = text(values, 'name') ?? basename(path).replace(/\.gguf$/, '');
    const onError = (error: unknown): void =>
      output.note(`serve: ${error instanceof Error ? error.message : String(error)}`);
    await withModel('serve', values, output, { sequences: parallel }, async (model, drafting) => {
      const server = modelServer(model, { name, parallel, queue, drafting, onError });
      try {
        server.listen(port, host);
        await once(server, 'listening');
        const address = server.address();
        const bound = typeof address === 'object' && address !== null ? address.port : port;
        const url = `http://${host}:${bound}/v1`;
        output.line(values['json'] === true ? JSON.stringify({ url, model: name }) : `${name} at ${url}`);
        await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM'), once(server, 'close')]);
      } finally {
        server.close();
        server.closeAllConnections();
      }
    });
  },
};
