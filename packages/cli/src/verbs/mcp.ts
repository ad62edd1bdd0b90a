import { UsageError } from '../errors/kinds.ts';
import { clients } from '../mcp/clients.ts';
import { defineVerb, type Verb } from './verb.ts';

const names = Object.keys(clients);

export const mcp: Verb = defineVerb({
  command: 'mcp',
  group: 'Share',
  summary: 'Serve sessions to another agent over MCP',
  detail:
    'Answers a client on stdin and stdout until it closes them, with tools that list, read, search, fork, append to, mark, merge, ' +
    'compare, trace and check sessions, and with sessions as resources. --install shows what a program needs to start it, and ' +
    'writes that into the file of the program after a question.',
  examples: [
    ['tape mcp --install claude-code', 'Show the entry of Claude Code, and write it when you agree'],
    ['tape mcp --install cursor --read-only --yes', 'Let Cursor read sessions, and write nothing'],
    ['tape mcp --uninstall cursor --yes', 'Remove the entry again'],
  ],
  options: {
    'read-only': { type: 'boolean', describe: 'Offer only the tools that read' },
    install: {
      type: 'string',
      choices: names,
      describe: 'Add this server to the configuration of a program',
    },
    uninstall: { type: 'string', choices: names, describe: 'Remove this server from it' },
    yes: { type: 'boolean', describe: 'Write the file of the program without a question' },
  },
  conflicts: { install: ['uninstall'] },
  run: async ({ readOnly = false, install, uninstall, yes = false, json, jsonl }, context) => {
    const client = install ?? uninstall;
    if (client !== undefined) {
      const { install: apply } = await import('../mcp/install.ts');
      return await apply(
        { client, act: install === undefined ? 'uninstall' : 'install', readOnly, yes },
        context,
      );
    }
    if (yes) throw new UsageError('cannot use --yes without --install or --uninstall');
    if (json === true || jsonl === true)
      throw new UsageError('cannot use --json here: stdout is for the client, which speaks MCP');
    const { serve } = await import('../mcp/server.ts');
    return await serve(context, { readOnly });
  },
});
