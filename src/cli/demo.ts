import type { Command } from './command.ts';
export const demoCommand: Command = {
  name: 'demo',
  about: '',
  details: '',
  options: {},
  examples: [],
  run: async () => undefined,
};
