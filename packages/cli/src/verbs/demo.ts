import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { UsageError } from '../errors/kinds.ts';
import { packageFile } from '../package-file.ts';
import { defineVerb, type Verb } from './verb.ts';

const shipped = (name: string): string => fileURLToPath(packageFile(`demo/${name}`));

export const demo: Verb = defineVerb({
  command: 'demo',
  group: 'Start',
  summary: 'Run an example of import, delegation and merge, offline',
  detail:
    'Imports a transcript into a temporary home, anchors it, delegates two tasks to scripted models with tools, merges both ' +
    'results, and verifies the tapes.',
  examples: [['tape demo', 'Takes about a second, and needs no key']],
  run: async ({ home: given, json, jsonl }, { io, tape }) => {
    if (json === true || jsonl === true)
      throw new UsageError('cannot use --json or --jsonl: the demo prints text');
    const home = given ?? (await mkdtemp(join(tmpdir(), 'tapedeck-demo-')));
    const { runDemo } = await import('../demo.ts');
    return await runDemo(tape, io, {
      home,
      transcript: shipped('transcript.jsonl'),
      answers: shipped('answers.json'),
    });
  },
});
