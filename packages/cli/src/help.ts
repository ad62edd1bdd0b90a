import { type Group, nameOf, type Verb } from './verbs/verb.ts';

const groups: readonly Group[] = ['Start', 'Look', 'Change direction', 'Trust', 'Other'];

/** What `tape --help` prints: the verbs in the order in which people meet them. */
export function helpPage(verbs: readonly Verb[]): string {
  const width = Math.max(...verbs.map((verb) => nameOf(verb).length));
  const lines = groups.flatMap((group) => {
    const own = verbs.filter((verb) => verb.group === group);
    if (own.length === 0) return [];
    return ['', group, ...own.map((verb) => `  ${nameOf(verb).padEnd(width)}  ${verb.summary}`)];
  });
  return [
    'Keep agent sessions on append-only tapes: fork them, run them, merge them back',
    '',
    'Usage: tape <verb> [session[@point]] [options]',
    ...lines,
    '',
    'Options',
    '  --home DIR  Tape home (default: nearest .tape, or $TAPE_HOME)',
    '  --json      Print one JSON document on stdout; errors as JSON on stderr',
    '  --jsonl     Print JSON lines on stdout',
    '  --quiet     Print the id alone, and no status',
    '  --no-color  Print without colours, as in a pipe',
    '  --durability fast  Do not wait for the disk: a power cut may lose the last moments',
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
