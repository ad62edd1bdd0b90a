import { chat as hold } from '../chat/chat.ts';
import { createOptions } from '../options/create.ts';
import { runOptions } from '../options/model.ts';
import { defineVerb, type Verb } from './verb.ts';

export const chat: Verb = defineVerb({
  command: 'chat <name>',
  group: 'Run',
  summary: 'Talk to a session at the terminal',
  detail:
    'Sends each line as a prompt, and shows the answer as it comes, with tool calls and their results; asks for each approval. ' +
    '/help lists its commands: /fork, /rewind, /undo, /anchor, /log and others; // begins a prompt with a slash. Ctrl-C stops ' +
    'a turn, Ctrl-D leaves. In a pipe, or with --json, --jsonl or --quiet, reads a prompt from each line of stdin, asks nothing, ' +
    'and stops at a run that did not end well.',
  examples: [
    ['tape chat main --model openai-compatible/gpt-oss', 'Talk to main, and create it if it does not exist'],
    ['echo "Plan the release" | tape chat main', 'Send each line of a file or a pipe as a prompt'],
  ],
  arguments: { name: 'Session; created if it does not exist' },
  options: { ...createOptions, ...runOptions },
  run: async (args, context) => await hold(args, context),
});
