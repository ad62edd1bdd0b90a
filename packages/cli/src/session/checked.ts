import type { Check, CheckedSection, CheckFinding } from '@tapedeck/runtime';
import { counted } from '../output/counted.ts';
import { commandFor } from './next-step.ts';

/** The result of a check as `--json` prints it; part of the documented contract. */
export function checkJson({ ok, sessions, entries, sections }: Check): Readonly<Record<string, unknown>> {
  return {
    ok,
    sessions,
    entries,
    sections: Object.fromEntries(
      Object.entries(sections).map(([name, { ok, findings }]: [string, CheckedSection]) => [
        name,
        { ok, findings: findings.map(findingJson) },
      ]),
    ),
  };
}

function findingJson(finding: CheckFinding): Readonly<Record<string, unknown>> {
  const { id, code, weight, session, seq, message } = finding;
  return { id, code, weight, session, seq, message, next: nextOf(finding) };
}

function nextOf({ next, id }: CheckFinding): string | null {
  return next === undefined ? null : commandFor(next, id);
}

/** The result of a check as text: a line for each section, and one for each finding. */
export function checkText({ sessions, entries, sections }: Check): string {
  const lines = Object.entries(sections).flatMap(([name, { ok, findings }]: [string, CheckedSection]) => [
    `${name.replace('_', ' ')}: ${ok ? 'ok' : findings.some(({ weight }) => weight === 'damage') ? 'damaged' : 'incomplete'}`,
    ...findings.map((finding) => `  ${finding.id}: ${finding.message}${step(finding)}`),
  ]);
  return [...lines, `${counted(sessions, 'session')}, ${counted(entries, 'entry', 'entries')}`].join('\n');
}

function step(finding: CheckFinding): string {
  const next = nextOf(finding);
  return next === null ? '' : ` (next: ${next})`;
}
