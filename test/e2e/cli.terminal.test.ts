import { anchor, assistant, note, toolCall, toolResult, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { tempHome } from '../support/temp-home.ts';

/** Texts that steer a terminal, forge a line, or hide what they say. */
const payloads: readonly string[] = [
  '\u001b[2J', // clear the screen
  '\u001b[31mred\u001b[0m',
  '\u001b]0;title\u0007',
  '\u001b]8;;http://evil.example\u001b\\link\u001b]8;;\u001b\\',
  '\u001b]52;c;ZXZpbA==\u0007', // set the clipboard
  '\u001b[6n', // ask for the position of the cursor
  '\u001bP$q"p\u001b\\',
  '\u001b[?1049h',
  '\u009b2J',
  '\u009d0;title\u009c',
  '\u0090q\u009c',
  '\u0007\u0008\u007f',
  'safe\roverwritten',
  'a\u0000b',
  '\u000b\u000c\u0085',
  '\u202egnp.exe',
  '\u2066\u2067x\u2069',
  '\u200e\u200f\u061c',
  '\u200b\u200c\u200d\u2060\ufeff',
  '\u2028line\u2029paragraph',
  '\u{e0064}\u{e0065}\u{e006c}',
  '\u00adsoft',
  '\ud800 alone',
  '\udfff\ud800',
  '\u{f0000}\u{10ffff}\ufff9\ufffb',
];

const esc = '\u001b';
/** What colours a text. */
const colours = new RegExp(`${esc}\\[[0-9;]*m`, 'g');
/** The links of the command, whose addresses are encoded. */
const links = new RegExp(`${esc}\\]8;;(?:file:[!-~]*)?${esc}\\\\`, 'g');

test.each([false, true])(
  'no verb prints a character that steers a terminal or hides a text (to a terminal: %s)',
  async (isTerminal) => {
    using home = tempHome();
    {
      using store = home.open();
      const { id } = store.sessions.open('main', { title: payloads.join(' ') });
      store.entries.append('main', [user('Go')]);
      for (const [i, text] of payloads.entries()) {
        const call = `call_${i}`;
        store.entries.append('main', [
          user(`before ${text} after`),
          assistant([{ type: 'text', text }, toolCall(call, `tool-${text}`.toWellFormed(), { text })]),
          toolResult(
            { toolCallId: call, toolName: `tool-${text}`.toWellFormed() },
            { type: 'text', value: text },
          ),
          anchor(`a${i}`, { text }),
          note('app/note', { message: text }),
        ]);
      }
      store.lineage.fork('main', {
        name: 'child',
        deliver: 'merge',
        intention: { nextSteps: payloads.join(' ').toWellFormed() },
      });
      store.entries.append('child', [user('Report'), assistant(payloads.join(' '))]);
      store.lineage.merge('child');
      expect(id).not.toBe('');
    }
    const unsafe = /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/u;
    const lines = [
      'log main -n 200',
      'log main --full',
      'log main --all --oneline',
      'log main --grep safe --times iso',
      'log main --stat',
      'log child',
      'show main@4',
      'show main@5',
      'search before',
      'view main',
      'sessions',
      'children main',
      'graph',
      'lineage main',
      'diff main child',
      'trace main@8',
      'usage main',
      'audit',
      'status main',
    ];
    for (const line of lines)
      for (const form of ['', ' --json']) {
        const { stdout, stderr } = await home.here([...(line + form).split(' ')], {
          isTerminal,
          env: { FORCE_HYPERLINK: '1' },
        });
        // The colours and links of a terminal are the command's own.
        const said = stdout + stderr;
        const text = isTerminal ? said.replace(colours, '').replace(links, '') : said;
        expect(unsafe.exec(text)?.[0] ?? '', line + form).toBe('');
        expect(stdout, line + form).not.toBe('');
      }
  },
);
