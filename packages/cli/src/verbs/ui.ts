import { UsageError } from '../errors/kinds.ts';
import { defineVerb, type Verb } from './verb.ts';

export const ui: Verb = defineVerb({
  command: 'ui',
  group: 'Look',
  summary: 'Show sessions in a browser',
  detail:
    'Serves a page on this machine alone, and prints its address, which lets in the browser that opens it first. The page shows ' +
    'sessions, their lineage, timelines, what models saw, differences, traces, usage and findings, and follows what any process ' +
    'writes. It changes nothing: each thing that can be acted on shows its command. Ends with Ctrl-C, or with its terminal.',
  examples: [
    ['tape ui', 'Serve the page, and print its address'],
    ['tape ui --json', 'Say as JSON where it is'],
  ],
  options: {
    port: { type: 'number', describe: 'Listen on this port (default: a free one)' },
    open: { type: 'boolean', describe: 'Open the page in the browser' },
  },
  run: async ({ port = 0, open = false }, context) => {
    if (!Number.isInteger(port) || port < 0 || port > 65_535)
      throw new UsageError(`cannot use --port ${port}: a port is a whole number up to 65535`);
    const { show } = await import('../ui/show.ts');
    return await show(context, { port, open });
  },
});
