import { type HomeStore, view } from '@tapedeck/tape';
import { transcriptLines } from '../bench/transcripts.ts';
import { jsonl, model, person, says } from './transcript.ts';

/** The session of the transcripts. */
export const branchedSession = '5f3c9a52-0000-4000-8000-000000000000';

/** The lines of a transcript, at whose end a prompt was typed anew, so that it has a branch. */
export function branchedTranscript(bytes: number): readonly string[] {
  const lines = [...transcriptLines({ bytes })];
  const prompts = lines.filter((line) => line.includes('"role":"user","content":"'));
  const { parentUuid } = JSON.parse(prompts.at(-1) ?? '{}') as { parentUuid: string };
  const again = jsonl([
    person({ uuid: 'z1', parent: parentUuid }, 'in another way', { sessionId: branchedSession }),
    model({ uuid: 'z2', parent: 'z1' }, [says('as you like')], { sessionId: branchedSession }),
  ]);
  return [...lines, ...again.trimEnd().split('\n')];
}

/** The transcript of a subagent of it. */
export const subagentOfBranched: string = jsonl([
  person({ uuid: 'x1' }, 'Look', { isSidechain: true, agentId: 'x', sessionId: branchedSession }),
  model({ uuid: 'x2', parent: 'x1' }, [says('seen')], {
    isSidechain: true,
    agentId: 'x',
    sessionId: branchedSession,
  }),
]);

/** What a model would see of each session, by name, and the tokens of all. */
export function shownIn(store: HomeStore) {
  const names = store.sessions.list({ all: true }).map((one) => one.session);
  const views = names.toSorted().map((name) => [name, view(store.views.entries(name)).messages] as const);
  const tokens = store.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0);
  return { views: Object.fromEntries(views), tokens };
}
