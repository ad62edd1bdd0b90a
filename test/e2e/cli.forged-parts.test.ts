import { writeFileSync } from 'node:fs';
import { assistant, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { forge } from '../support/forge.ts';
import { tempHome } from '../support/temp-home.ts';

/** Contents of messages that no program of this project writes, with hashes that agree. */
const contents = ['[null]', '[1,"a",[]]', '[{}]', '[{"type":7}]', '{"type":"text"}', 'null', '7'];

test.each(contents)(
  'verbs read a message with the content %s as one without these parts',
  async (content) => {
    using home = tempHome();
    home.session('main', user('First'), assistant('Second'), user('Third'));
    forge(home.db, ({ rewrite, relink }) => {
      for (const seq of [3, 4])
        rewrite('main', seq, (payload) => payload.replace(/"content":.*\}$/, `"content":${content}}`));
      relink();
    });
    const script = home.file('answers.json');
    writeFileSync(script, JSON.stringify([{ text: 'Done.' }]));
    for (const line of [
      'log main',
      'log main --json',
      'show main@3',
      'view main',
      'view main --target anthropic',
      'status main',
      'diff main main@2',
      'search Second',
      'usage main',
      'audit',
      'children main',
      'fork main --as kid',
      'merge kid --dry-run --force',
      `run main More --model script:${script}`,
      'verify',
    ])
      expect([line, await home.tape(line.split(' '))]).toMatchObject([line, { code: 0 }]);
  },
);
