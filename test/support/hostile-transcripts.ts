import { calls, model, person, returns, says } from './transcript.ts';

const dot =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: dot } };

/** A file with a word in place of its bytes. */
const taken = (type: string) => ({
  type,
  source: { type: 'base64', media_type: type === 'image' ? 'image/png' : 'application/pdf', data: '[gone]' },
});

/** A prompt, a call with its result, and an answer. */
const called = (id: string, name: string, content: unknown = 'ok', input = {}) => [
  person({ uuid: 'u1' }, 'Hello'),
  model({ uuid: 'a1', parent: 'u1' }, [calls(id, name, input)]),
  person({ uuid: 'u2', parent: 'a1' }, [returns(id, content)]),
  model({ uuid: 'a2', parent: 'u2' }, [says('Done.')]),
];

/** Transcripts with what a provider would refuse as it is, by what is in them. */
export const hostileFiles: Readonly<Record<string, readonly unknown[]>> = {
  'a call id of another tool': called('call|fc_68ae:with/slashes and spaces', 'Read'),
  'a call id of 300 characters': called('x'.repeat(300), 'Read'),
  'a tool name that no provider takes': called('toolu_1', 'mcp.server/read file…'),
  'a tool name of 200 characters': called('toolu_1', 'mcp__server__'.padEnd(200, 'x')),
  'a result that is an image': called('toolu_1', 'Read', [image]),
  'an empty result': called('toolu_1', 'Read', ''),
  'a result of a blank text': called('toolu_1', 'Read', [says(' \n')]),
  'a result with half a character': called('toolu_1', 'Read', 'broken \ud800'),
  'arguments that are no object': called('toolu_1', 'Read', 'ok', 'text' as never),
  'two calls with one id': [
    ...called('toolu_1', 'Read'),
    person({ uuid: 'u3', parent: 'a2' }, 'Again'),
    model({ uuid: 'a3', parent: 'u3' }, [calls('toolu_1', 'Read')]),
    person({ uuid: 'u4', parent: 'a3' }, [returns('toolu_1')]),
  ],
  'ids that are the same when they are shortened': [
    person({ uuid: 'u1' }, 'Hello'),
    model({ uuid: 'a1', parent: 'u1' }, [calls(`${'x'.repeat(90)}1`), calls(`${'x'.repeat(90)}2`)]),
    person({ uuid: 'u2', parent: 'a1' }, [returns(`${'x'.repeat(90)}2`), returns(`${'x'.repeat(90)}1`)]),
  ],
  'a result without a call': [
    person({ uuid: 'u1' }, [returns('toolu_0')]),
    model({ uuid: 'a1', parent: 'u1' }, [says('So.')]),
  ],
  'calls without a result': [
    person({ uuid: 'u1' }, 'Hello'),
    model({ uuid: 'a1', parent: 'u1' }, [calls('toolu_1'), calls('toolu_2')]),
    person({ uuid: 'u2', parent: 'a1' }, 'Never mind'),
  ],
  'empty and blank messages': [
    person({ uuid: 'u1' }, ''),
    model({ uuid: 'a1', parent: 'u1' }, [says('')]),
    person({ uuid: 'u2', parent: 'a1' }, [says(' \n ')]),
    model({ uuid: 'a2', parent: 'u2' }, [says('\n\n')]),
  ],
  'an answer first': [model({ uuid: 'a1' }, [says('I begin.')])],
  'answers that follow each other': [
    person({ uuid: 'u1' }, 'Hello'),
    model({ uuid: 'a1', parent: 'u1' }, [says('One.')]),
    model({ uuid: 'a2', parent: 'a1' }, [says('Two.')]),
  ],
  'thoughts alone': [
    person({ uuid: 'u1' }, 'Hello'),
    model({ uuid: 'a1', parent: 'u1' }, [{ type: 'thinking', thinking: 'Hm.', signature: 'sig' }]),
  ],
  'a thought without a signature': [
    person({ uuid: 'u1' }, 'Hello'),
    model({ uuid: 'a1', parent: 'u1' }, [{ type: 'thinking', thinking: 'Hm.' }, says('Yes.')]),
  ],
  'images and documents': [
    person({ uuid: 'u1' }, [
      says('See'),
      image,
      { type: 'image', source: { type: 'base64', media_type: 'image/tiff', data: dot } },
      { type: 'image', source: { type: 'url', url: 'https://pictures.example/1.png' } },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'A page.' } },
    ]),
  ],
  'files that other programs took away': [
    person({ uuid: 'u1' }, [says('See'), taken('image'), taken('document')]),
    model({ uuid: 'a1', parent: 'u1' }, [calls('toolu_1')]),
    person({ uuid: 'u2', parent: 'a1' }, [returns('toolu_1', [taken('image'), says('and this')])]),
  ],
  'files in lines, and of no known kind': [
    person({ uuid: 'u1' }, [
      { type: 'image', source: { type: 'base64', media_type: 'image/*', data: dot } },
      {
        type: 'image',
        source: { type: 'base64', media_type: 'image/png', data: dot.replace(/.{40}/g, '$&\n') },
      },
    ]),
  ],
  'reminders beside a result': [
    ...called('toolu_1', 'Read'),
    {
      type: 'attachment',
      uuid: 'x1',
      parentUuid: 'a2',
      attachment: { type: 'date' },
      rendered: [{ content: '<system-reminder>\nIt is late.\n</system-reminder>' }],
    },
  ],
};
