import { type Group, nameOf, type Verb } from '../verbs/verb.ts';

const groups: readonly Group[] = ['Start', 'Look', 'Change direction', 'Trust', 'Other'];

/** The text of `tape --help`: the verbs by group. */
export function helpPage(verbs: readonly Verb[]): string {
  const width = Math.max(...verbs.map((verb) => nameOf(verb).length));
  const lines = groups.flatMap((group) => {
    const own = verbs.filter((verb) => verb.group === group);
    if (own.length === 0) return [];
    return ['', group, ...own.map((verb) => `  ${nameOf(verb).padEnd(width)}  ${verb.summary}`)];
  });
  return [
    'Record, fork, run and merge agent sessions on append-only tapes',
    '',
    'Usage: tape <verb> [session[@point]] [options]',
    ...lines,
    '',
    'Options',
    '  --home DIR  Tape home (default: $TAPE_HOME, else the nearest .tape, else ~/.tape)',
    '  --base NAME  Realm of the session names (default: that of the home, else tape)',
    '  --id TEXT   The session of an id of another program, in place of its name',
    '  --json      Print one JSON document on stdout; errors as JSON on stderr',
    '  --jsonl     Print JSON lines on stdout',
    '  --quiet     Print ids only, and no status',
    '  --color WHEN  Colour the output: auto (on a terminal), always or never',
    '  --durability fast  Do not wait for the disk: a power cut may lose the latest entries',
    '  --help      Show help for any verb',
    '',
    'Examples',
    '  tape import transcript.jsonl --as main',
    '  tape anchor main task-start',
    '  tape delegate main --since task-start --task "Check the docs" --model openai-compatible/gpt-oss',
    '  tape graph',
    '',
  ].join('\n');
}
