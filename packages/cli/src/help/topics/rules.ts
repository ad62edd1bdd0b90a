import type { Topic } from '../page.ts';

export const rules: Topic = {
  name: 'rules',
  summary: 'What a rule about calls of tools looks like, and where rules stand',
  page: {
    sections: [
      {
        blocks: [
          'A rule begins with `deny`, `ask` or `allow`. Of the rules about the same thing the last one decides, and ' +
            'down a lineage the strictest of what each session says. Without any rule, everything is allowed.',
          {
            terms: [
              ['`deny mcp_github_*`', 'Tools, by their names'],
              ['`allow read(docs/**)`', 'Files that a call reads; `write(…)`: files that it writes'],
              ['`ask exec(git *)`', 'Commands, word by word, without a shell'],
              ['`allow send(parent)`', 'Sessions: `parent`, `children`, `family`, or names'],
              ['`deny opaque(*)`', 'Tools that do not declare what they touch'],
              ['`allow *`', 'Everything'],
              ['`deny! read(~/.ssh/**)`', 'A pinned rule: no other rule and no answer makes it less strict'],
              ['`trusted`, `sandboxed`, `yolo`', 'Lists of rules'],
            ],
          },
          'In a path `*` is any part of a name, `**` any directories, and `{workspace}` the worktree of the session, or ' +
            'the directory of the deck. Rules are compared with the real path of a file.',
        ],
      },
      {
        title: 'Places',
        blocks: [
          {
            terms: [
              ['`permissions`', 'In `tape.config.mts`, then in `config.yaml` of the home: for every session'],
              ['`--rule RULE`', 'Of `tape new` and `tape fork`: for the session and all below it'],
              ['`--remember N`', 'Of `tape approve`: the answer counts for good'],
            ],
          },
          '`tape permissions NAME` shows the rules of a session, and `tape permissions NAME TOOL JSON` what they say ' +
            'of a call. Rules are no sandbox: they decide on what tools declare.',
        ],
      },
    ],
  },
};
