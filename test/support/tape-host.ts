import { main } from '@tapedeck/cli';
import { bufferedIo } from './buffered-io.ts';
import type { HostOrder } from './tape-in-node.ts';

/**
 * Runs command lines of the built `tape` one after another, as the messages of its parent say; ends with its parent.
 */
process.on('message', async ({ args, options }: HostOrder) => {
  // A command line may name files that are relative to its directory.
  process.chdir(options.cwd ?? process.cwd());
  const { io, said } = bufferedIo(options);
  const code = await main(args, io);
  process.send?.({ ...said, code });
});
process.on('disconnect', () => process.exit());
