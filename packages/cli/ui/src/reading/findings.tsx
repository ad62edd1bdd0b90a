import type { Finding } from '../../../src/page/data.ts';
import { CommandLine } from '../parts/command.tsx';

/** Findings, each with what ends it. */
export function FindingLines({ findings }: { readonly findings: readonly Finding[] }) {
  return findings.map(({ id, weight, text, command }) => (
    <p key={id} class={`finding is-${weight}`}>
      <span class="chip">{weight}</span> {text} {command !== undefined && <CommandLine line={command} />}
    </p>
  ));
}
