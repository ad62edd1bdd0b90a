import {
  anchor,
  compaction,
  type Draft,
  handoff,
  note,
  prune,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
} from '@tapedeck/tape';
import {
  bmp,
  by,
  item,
  itemText,
  largePng,
  openaiSearch,
  partial,
  pdf,
  png,
  redacted,
  said,
  search,
  signedCall,
  text,
  thought,
} from './golden/parts.ts';
import { sealed } from './provider/signed.ts';

/** A history that some provider has once been, or could be, refused for. Its session is `main`, its forks their own. */
export interface GoldenTape {
  readonly name: string;
  readonly write: (store: SqliteTapeStore) => void;
}

const named = (toolName: string) => (toolCallId: string) => ({ toolCallId, toolName });
const read = named('read');

/** A history that is one tape, entry after entry. */
function tape(name: string, drafts: readonly Draft[]): GoldenTape {
  return {
    name,
    write: (store) => {
      store.sessions.open('main');
      for (const draft of drafts) store.entries.append('main', [draft]);
    },
  };
}

/** The sessions of a golden tape are of these names. */
export const goldenTapes: readonly GoldenTape[] = [
  tape('texts', [
    user('Hi'),
    said(by.anthropic, 'Hello. '),
    user([text('One'), text(''), text('Two'), text(' \n')]),
    said(by.openaiChat, '', ' \n\n', 'Three\n'),
    user('   '),
    said(by.compatible, 'Four'),
    user('half \ud83d of it'),
    said(by.compatible, '\udc00 and the rest'),
    said(by.anthropic, '\n'),
    said(by.responses, itemText('Five')),
    user('\u0000 \u2028 </s> <|im_end|> [INST]'),
  ]),

  tape('thoughts', [
    said(by.anthropic, thought('Who begins?'), 'I do.'),
    user('Think.'),
    said(
      by.anthropic,
      thought('First.'),
      redacted('r1'),
      'So.',
      thought('Then.'),
      toolCall('toolu_1', 'read', {}),
    ),
    toolResult(read('toolu_1'), 'the file'),
    said(by.anthropic, redacted('r2'), thought('And so.'), 'Done.'),
    user('Again.'),
    said(by.anthropic, thought('Only thinking.')),
    said(by.anthropic, 'Said.', thought('Too late.')),
    user('You, OpenAI?'),
    said(by.responses, item('step 1'), toolCall('call_1', 'read', { path: 'a' })),
    toolResult(read('call_1'), { lines: 3 }),
    said(by.responses, item('step 2'), itemText('Three lines.')),
    said(by.responses, item('never said')),
    user('And others?'),
    said(by.compatible, { type: 'reasoning', text: 'plain thoughts' }, 'Here.'),
    said(by.compatible, { type: 'reasoning', text: 'nothing but thoughts' }),
    user('Gemini?'),
    said(by.google, { type: 'reasoning', text: 'flash' }, signedCall('g1', 'read', {})),
    toolResult(read('g1'), 'ok'),
    said(by.google, { ...text(''), providerOptions: { google: { thoughtSignature: sealed('google') } } }),
    said(by.anthropic, { type: 'reasoning', text: 'unsigned, as imports may have it' }, 'Fine.'),
  ]),

  tape('tools of the provider', [
    user('Search.'),
    said(by.anthropic, thought('Look it up.'), ...search('1', 'tapes'), {
      ...text('Found.'),
      providerOptions: {
        anthropic: {
          citations: [
            {
              type: 'char_location',
              cited_text: 'tapes',
              document_index: 0,
              document_title: null,
              start_char_index: 0,
              end_char_index: 5,
            },
          ],
        },
      },
    }),
    user('And you?'),
    said(by.responses, item('look'), ...openaiSearch('decks'), itemText('Found as well.')),
    user('Pause.'),
    said(by.anthropic, 'Searching …', search('2', 'long')[0]),
    said(by.anthropic, search('2', 'long')[1], 'After a pause.'),
    said(by.anthropic, 'And once more …', search('3', 'never')[0]),
    user('Forget it.'),
    said(by.anthropic, search('4', 'no call')[1], 'Only a result.'),
    said(by.anthropic, ...search('1', 'the id again'), 'Twice the same id.'),
    user('Both at once.'),
    said(by.anthropic, search('5', 'and a file')[0], toolCall('toolu_5', 'read', {})),
    toolResult(read('toolu_5'), 'the file'),
    said(by.anthropic, search('5', 'and a file')[1], 'Both.'),
    said(by.anthropic, search('6', 'failing')[0], {
      ...search('6', 'failing')[1],
      output: {
        type: 'error-json',
        value: { type: 'web_search_tool_result_error', errorCode: 'unavailable' },
      },
    }),
  ]),

  tape('tools of ours', [
    user('Read both.'),
    said(
      by.anthropic,
      'Reading.',
      toolCall('toolu_1', 'read', { n: 1 }),
      toolCall('toolu_2', 'read', { n: 2 }),
    ),
    toolResult(read('toolu_2'), { type: 'error-text', value: 'no such file' }),
    toolResult(read('toolu_1'), { type: 'error-json', value: { code: 'ENOENT', half: '\udfff' } }),
    said(by.compatible, toolCall('0', 'read', {}), toolCall('1', 'read', {})),
    toolResult(read('1'), { type: 'execution-denied', reason: 'not today' }),
    toolResult(read('0'), { type: 'execution-denied' }),
    user('Steer!'),
    said(by.compatible, toolCall('0', 'read', {})),
    toolResult(read('0'), ''),
    said(
      by.google,
      toolCall('fs.read:0/a', 'fs.read file', { p: 1 }),
      toolCall('x'.repeat(70), 'n'.repeat(80), {}),
    ),
    toolResult({ toolCallId: 'x'.repeat(70), toolName: 'n'.repeat(80) }, null),
    toolResult({ toolCallId: 'fs.read:0/a', toolName: 'another name' }, [1, 2]),
    said(by.responses, item('bad'), toolCall('call_2', 'read', '{"cut": ')),
    toolResult(read('call_2'), { type: 'error-text', value: 'no JSON' }),
    said(
      by.openaiChat,
      toolCall('call_3', 'read', null),
      toolCall('call_4', 'read', [1]),
      toolCall('call_5', 'read', '{"a":1}'),
    ),
    toolResult(read('call_3'), { type: 'content', value: [] }),
    toolResult(read('call_4'), {
      type: 'content',
      value: [
        { type: 'text', text: 'See' },
        { type: 'text', text: '' },
        file('image/png', png),
        file('image/bmp', bmp),
      ] as never,
    }),
    toolResult(read('call_5'), {
      type: 'content',
      value: [
        { type: 'image-data', mediaType: 'image/png', data: Buffer.from(largePng).toString('base64') },
        { type: 'image-url', url: 'https://pictures.example/a.png' },
        { type: 'file-id', fileId: 'file-1' },
        file('application/pdf', pdf),
        file('text/csv', new TextEncoder().encode('a,b\n1,2\n')),
        {
          type: 'file',
          mediaType: 'image/png',
          data: { type: 'url', url: 'https://pictures.example/b.png' },
        },
      ] as never,
    }),
    toolResult(read('missing'), 'asked for this'),
    said(by.anthropic, toolCall('toolu_1', 'read', {}), toolCall('toolu_9', 'read', {})),
    toolResult(read('toolu_9'), 'only this one'),
    // Texts, files, failures, denials: any content of a result.
    prune(
      Array.from({ length: 30 }, (_, i) => ({ seq: i + 2, toolCallId: 'any', tokens: i })),
      { trigger: 'manual' },
    ),
    user('What was it?'),
  ]),

  tape('files', [
    user([text('A picture'), { type: 'file', mediaType: 'image/png', data: png }]),
    said(by.anthropic, 'A pixel.'),
    user([
      { type: 'image', image: largePng },
      { type: 'image', image: 'https://pictures.example/c.jpg', mediaType: 'image/jpeg' },
    ]),
    said(by.responses, itemText('Two.')),
    user([
      { type: 'file', mediaType: 'image/png', data: Buffer.from(png).toString('base64') },
      { type: 'file', mediaType: 'image', data: { type: 'url', url: 'https://pictures.example/d.png' } },
      {
        type: 'file',
        mediaType: 'image/png',
        data: `data:image/png;base64,${Buffer.from(png).toString('base64')}`,
      },
    ]),
    said(by.google, 'Made one:', { type: 'file', mediaType: 'image/png', data: png }),
    user([{ type: 'file', mediaType: 'image/bmp', data: bmp, filename: 'old.bmp' }]),
    user([{ type: 'file', mediaType: 'application/pdf', data: pdf, filename: 'paper.pdf' }]),
    user([
      {
        type: 'file',
        mediaType: 'text/csv',
        data: new TextEncoder().encode('a,b\n1,2\n'),
        filename: 'table.csv',
      },
    ]),
    user([{ type: 'file', mediaType: 'text/plain', data: { type: 'text', text: 'plain words' } }]),
    user([
      { type: 'file', mediaType: 'application/zip', data: bmp },
      { type: 'file', mediaType: 'audio/wav', data: bmp },
    ]),
    user([
      { type: 'file', mediaType: 'image/png', data: { type: 'reference', reference: { google: 'files/1' } } },
    ]),
    user([
      { type: 'file', mediaType: 'image/png', data: { google: 'files/2' } },
      { type: 'file', mediaType: 'image/png', data: 'gs://bucket/e.png' },
    ]),
    said(by.google, { type: 'file', mediaType: 'image/png', data: png }),
  ]),

  tape('broken off', [
    user('Well?'),
    partial(by.anthropic, { type: 'reasoning', text: 'I was thin' }, 'I think that '),
    note('run/error', { message: 'overloaded' }),
    said(by.anthropic, thought('Again.'), 'As I said.'),
    said(by.anthropic, 'And another thing.'),
    partial(by.responses, item('lost'), { ...itemText('Lost'), text: 'Los' }, openaiSearch('lost')[0]),
    partial(by.anthropic, { type: 'reasoning', text: 'only a thought' }),
    partial(by.compatible, toolCall('c1', 'read', { path: 'a' })),
    note('run/aborted', { reason: 'enough' }),
    user('Go on.'),
    said(by.responses),
    said(by.anthropic, thought('Call.'), toolCall('toolu_1', 'read', {}), toolCall('toolu_2', 'read', {})),
    toolResult(read('toolu_1'), 'one'),
    user('What about the other?'),
    partial(by.compatible, '\ud800'),
  ]),

  tape('many providers', [
    user('Round one.'),
    said(by.anthropic, thought('a'), 'A.', toolCall('toolu_a', 'read', {})),
    toolResult(read('toolu_a'), 'a'),
    said(by.responses, item('b'), itemText('B.'), toolCall('call_b', 'read', {})),
    toolResult(read('call_b'), 'b'),
    said(by.compatible, toolCall('call_0', 'read', {})),
    toolResult(read('call_0'), 'c'),
    said(by.google, signedCall('call_0', 'read', {})),
    toolResult(read('call_0'), 'd'),
    said(by.openaiChat, 'E.'),
    said(by.anthropic, redacted('f'), thought('f'), 'F.'),
    user([
      {
        ...text('Cached.'),
        providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } }, openai: { x: 1 } },
      },
    ]),
    said(by.responses, item('g'), ...openaiSearch('g'), itemText('G.')),
    said(by.anthropic, ...search('h', 'h'), 'H.'),
  ]),

  {
    name: 'acts',
    write: (store) => {
      store.sessions.open('main', { title: 'Golden' });
      store.entries.append('main', [
        user('Begin.'),
        said(by.anthropic, thought('x'), 'Y.', toolCall('toolu_1', 'read', {})),
      ]);
      store.entries.append('main', [
        toolResult(read('toolu_1'), 'the file'),
        anchor('task', { goal: 'ship' }),
      ]);
      store.lineage.fork('main', {
        name: 'child',
        inherit: { since: 'task' },
        intention: { nextSteps: 'Write.', contextSummary: 'A release.', triggerOnComplete: 'none' },
      });
      store.entries.append('child', [said(by.responses, item('w'), itemText('Written.'))]);
      store.lineage.fork('main', {
        name: 'fresh',
        inherit: 'nothing',
        intention: { nextSteps: 'Alone.', contextSummary: '', triggerOnComplete: 'none' },
      });
      store.entries.append('fresh', [said(by.compatible, 'By myself.')]);
      store.entries.append('main', [
        said(by.compatible, toolCall('call_0', 'read', {})),
        toolResult(read('call_0'), 'more'),
      ]);
      store.lineage.merge([{ child: 'child' }, { child: 'fresh' }]);
      store.entries.append('main', [said(by.anthropic, thought('merged'), 'Both are in.'), user('Good.')]);
      store.history.rewind('main', 'task');
      store.entries.append('main', [
        said(by.anthropic, 'From the task on.'),
        user('Yes.'),
        said(by.responses, item('v'), itemText('V.')),
      ]);
      store.entries.append('main', [user('Call.'), said(by.anthropic, toolCall('toolu_2', 'read', {}))]);
      store.entries.append('main', [toolResult(read('toolu_2'), 'kept')]);
      const { head } = store.sessions.open('main');
      store.entries.append('main', [
        handoff('phase-2', { summary: 'So far.', files: ['a.ts'] }, { keepFrom: head }),
      ]);
      store.entries.append('main', [said(by.anthropic, thought('after'), 'After the handoff.')]);
      store.entries.append('main', [
        user('Summarise.'),
        compaction(
          { summary: '## Goal\nShip.', range: [1, head], trigger: 'manual' },
          { keepFrom: head + 2 },
        ),
        said(by.responses, item('s'), itemText('After the summary.')),
      ]);
      store.entries.append('main', [handoff('phase-3'), said(by.compatible, 'Nothing before this.')]);
      store.lineage.fork('main', { name: 'late' });
      store.entries.append('late', [user('Late.'), said(by.anthropic, redacted('late'), 'Here.')]);
    },
  },
];

function file(mediaType: string, bytes: Uint8Array) {
  return { type: 'file', mediaType, data: { type: 'data', data: bytes } };
}
