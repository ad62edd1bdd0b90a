import { createPublicKey, type KeyObject } from 'node:crypto';
import { createReadStream, existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { AttestationSource, Check, CheckFinding } from '@tapedeck/runtime';
import { TapeError } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { NotFoundError, UsageError } from '../errors/kinds.ts';
import { safe } from '../escape.ts';
import { exit } from '../exit.ts';
import { doesExist } from '../file-home.ts';
import { getHome, hasTapesToRead, noTapes } from '../home.ts';
import { expiringJson, type Imports, importsJson, importsOf, importsText } from '../import/last.ts';
import { withProgress } from '../output/progress.ts';
import { checkJson, checkText } from '../session/checked.ts';
import { readKey } from '../session/key-file.ts';
import { lookAt, mend } from '../session/mend.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const check: Verb = defineVerb({
  command: 'check [name]',
  group: 'Trust',
  paged: true,
  summary: 'Check home, entries, lineage, graph file and unfinished work',
  detail:
    'Does what verify, audit and doctor do, and prints the findings in sections. A home on a server has no graph file. docs/findings.md explains each. With a name: ' +
    'checks that session, the entries that it inherits, and the work of its descendants. Exits 5 when something recorded was ' +
    'changed or lost, 1 when only work is not finished, and 0 when there is nothing but notes. Without a name it also says when the ' +
    'last import was, and which transcripts their tool is about to delete that are not on a tape. --fix rebuilds projections and ' +
    'never changes an entry.',
  examples: [
    ['tape check', 'Check the home'],
    ['tape check main --json', 'Check main, for a program'],
    [
      'tape check --against heads.txt --public-key key.pem',
      'Prove that tapes have only grown since tape attest',
    ],
    ['tape check --acknowledge graph-aside:1a2b3c4d', 'Say that a finding is known'],
  ],
  arguments: { name: 'Session (default: all)' },
  options: {
    fix: { type: 'boolean', describe: 'Repair what can be rebuilt' },
    against: { type: 'string', takes: 'FILE', describe: 'Compare with the attestation in FILE' },
    'public-key': {
      type: 'string',
      takes: 'FILE',
      needs: 'against',
      describe: 'Verify the signature of the attestation with the PEM key in FILE',
    },
    acknowledge: { type: 'list', describe: 'Report this finding no more' },
  },
  run: async (args, context) => {
    const acknowledged = args.acknowledge ?? [];
    const { home } = context;
    if (acknowledged.length === 0 && home.server === undefined && !doesExist(home.db)) {
      const { checkWithoutDatabase } = await import('@tapedeck/runtime/internal');
      const lost = await checkWithoutDatabase(home.graph);
      if (lost !== undefined)
        return await report(lost, { fixed: [], acknowledged, imports: undefined }, context);
    }
    // Who has imported nothing yet loses most.
    if (args.name === undefined && !hasTapesToRead(home)) {
      const imports = await importsOf(context);
      throw noTapes(home, imports && expiringJson(imports));
    }
    getHome(home);
    for (const id of acknowledged) assertKnown(id);
    const against = sourceOf(args, context);
    const asked = { name: args.name, against };
    // A mistake in config.yaml is refused before anything is changed.
    const imports = args.name === undefined ? await importsOf(context) : undefined;
    if (acknowledged.length > 0) await acknowledge(acknowledged, await checked(context, asked), context);
    const fixed = args.fix === true ? await mend(context, await lookAt(context)) : [];
    const found = await checked(context, asked);
    return await report(found, { fixed, acknowledged, imports }, context);
  },
});

/** Prints the result, and returns its exit code. */
async function report(
  found: Check,
  {
    fixed,
    acknowledged,
    imports,
  }: {
    readonly fixed: readonly string[];
    readonly acknowledged: readonly string[];
    readonly imports: Imports | undefined;
  },
  { answer, style, io, inHome, options: { home }, home: { server } }: Context,
): Promise<number> {
  const columns = io.isTerminal ? io.columns : undefined;
  await answer({
    json: {
      ...checkJson(found, { home }),
      ...(imports !== undefined && { imports: importsJson(imports) }),
      ...{ fixed, acknowledged },
    },
    quiet: found.ok ? 'ok' : found.damaged ? 'damaged' : 'incomplete',
    human: [
      ...fixed.map((text) => safe(`fixed: ${text}`)),
      ...acknowledged.map((id) => safe(`acknowledged: ${id}`)),
      checkText(found, { style, home, columns, isOnServer: server !== undefined }),
      ...(imports === undefined ? [] : [importsText(imports, { now: io.now(), style, columns, inHome })]),
    ].join('\n'),
    isStyled: true,
  });
  return found.damaged ? exit.damaged : found.ok ? exit.done : exit.failed;
}

interface Asked {
  readonly name: string | undefined;
  /** Makes the source anew for each reading. */
  readonly against: (() => AttestationSource) | undefined;
}

async function checked(context: Context, { name, against }: Asked): Promise<Check> {
  const { home, reading } = context;
  const { check: checkStore } = await import('@tapedeck/runtime');
  let isOpen = false;
  try {
    return await reading(async (store) => {
      isOpen = true;
      const session = name === undefined ? undefined : needSession(store, name).id;
      return await withProgress(context, (progress) => {
        const parts = { entries: progress('Verifying entries'), sessions: progress('Examining sessions') };
        return checkStore(store, {
          graph: home.graph,
          onProgress: ({ of, ...now }) => parts[of](now),
          ...(session !== undefined && { session }),
          ...(against !== undefined && { against: against() }),
        });
      });
    });
  } catch (error) {
    // A base that cannot be one has a way out, which the error says.
    if (isOpen || !(error instanceof TapeError) || error.code !== 'TAPE_CORRUPT' || 'base' in error.data)
      throw error;
    const { checkUnreadable } = await import('@tapedeck/runtime/internal');
    return checkUnreadable(error);
  }
}

/** Files that were set aside are evidence for a person to look at. Every other finding ends with its cause. */
const acknowledgeable = 'graph-aside';

function assertKnown(id: string): void {
  if (!id.startsWith(`${acknowledgeable}:`))
    throw new UsageError(
      `cannot acknowledge '${id}': it is not '${acknowledgeable}:…', and other findings stay until their cause is gone`,
      {
        hint: 'list the findings with: tape check',
      },
    );
}

/** @throws NotFoundError when the check has no such finding, and it was not acknowledged before */
async function acknowledge(ids: readonly string[], found: Check, context: Context): Promise<void> {
  const open = new Set(findingsOf(found).map(({ id }) => id));
  await context.changing(async (store) => {
    const known = store.acknowledged();
    for (const id of ids)
      if (!open.has(id) && !known.has(id))
        throw new NotFoundError(`cannot acknowledge '${id}': there is no such finding`, { finding: id });
    for (const id of ids) store.acknowledge(id);
  });
}

function findingsOf({ sections }: Check): readonly CheckFinding[] {
  return Object.values(sections).flatMap((section) => section.findings);
}

function sourceOf(
  { against, publicKey }: { readonly against?: string | undefined; readonly publicKey?: string | undefined },
  { io }: Context,
): (() => AttestationSource) | undefined {
  if (against === undefined) return undefined;
  const path = resolve(io.cwd, against);
  if (!existsSync(path))
    throw new NotFoundError(`cannot read the attestation '${path}': no such file`, { file: path });
  if (statSync(path).isDirectory())
    throw new UsageError(`cannot read the attestation '${path}': it is a directory`, {
      hint: 'give the file that tape attest -o FILE made',
    });
  const key: KeyObject | undefined =
    publicKey === undefined ? undefined : readKey(resolve(io.cwd, publicKey), createPublicKey);
  return () => ({
    lines: linesOf(path),
    ...(key !== undefined && { publicKey: key }),
  });
}

/** The lines of a file. Only LF ends one: a file whose line ends were converted is another file. */
async function* linesOf(path: string): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of createReadStream(path, 'utf8')) {
    const lines = `${rest}${String(chunk)}`.split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') yield rest;
}
