import type { WaitingCall } from '@tapedeck/runtime';
import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { awaitedOf, isAnswerable } from '../output/run.ts';
import { argumentLines, callsOf } from '../transcript/parts.ts';
import type { Command, WaitingCall as Waiting } from './data.ts';
import { lineOf, type PageSource, placesOf, refOf, shownAs } from './source.ts';
import { kept } from './texts.ts';

/** Calls of an answer. */
const callsMax = 50;
/** Characters of the arguments of a call. */
const inputMax = 2_000;

/** The calls that a session waits for, and those below it that wait for answers. */
export async function waitingCalls(source: PageSource, info: SessionInfo): Promise<readonly Waiting[]> {
  const { store } = source;
  const { waitsOf } = await import('@tapedeck/runtime/internal');
  const waits = await waitsOf(store, info.id);
  return waits.slice(0, callsMax).map((call) => {
    const { toolCallId, name, input, claims = [] } = call;
    const of = (call.session === undefined ? undefined : shownAs(store, call.session)) ?? info;
    const seq = placeOf(store, of, toolCallId);
    const { text, cut } = kept(
      argumentLines(input).join('\n'),
      inputMax,
      lineOf(source, 'show', [placesOf(store, of)(seq)]),
    );
    return {
      session: refOf(store, of),
      seq,
      call: toolCallId,
      tool: name,
      input: text,
      ...(cut !== undefined && { cut }),
      for: call.for,
      what: awaitedOf[call.for],
      claims,
      commands: commandsFor(source, { at: refOf(store, info), of: refOf(store, of) }, call),
    };
  });
}

/** Where a call was made: it is open, so it is at the end. The id of one below has the name of its session before it. */
function placeOf(store: HomeStore, info: SessionInfo, id: string): number {
  const own = id.startsWith(`${info.session}/`) ? id.slice(info.session.length + 1) : id;
  for (const entry of store.entries.read(info.id, { from: info.settled + 1, calls: true }))
    if (callsOf(entry).some((call) => call.id === own || call.id === id)) return entry.seq;
  return info.head;
}

/** `at`: the session that is shown, which takes the answers; `of`: the one whose call it is. */
function commandsFor(
  source: PageSource,
  { at, of }: { readonly at: string; readonly of: string },
  call: WaitingCall,
): readonly Command[] {
  const { toolCallId: id } = call;
  if (call.for === 'tool')
    return [{ what: 'Run it', line: lineOf(source, 'run', [of], ['--config', 'FILE']) }];
  if (!isAnswerable(call)) return [{ what: 'See its children', line: lineOf(source, 'status', [at]) }];
  const answer = (...options: readonly string[]) => lineOf(source, 'approve', [at, id], options);
  return call.for === 'result'
    ? [{ what: 'Give its result', line: answer('--output', 'JSON') }]
    : [
        { what: 'Approve', line: answer() },
        { what: 'Deny', line: answer('--deny') },
      ];
}
