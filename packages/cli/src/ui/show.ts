import type { Context } from '../context.ts';
import { describeError } from '../errors/describe.ts';
import { exit } from '../exit.ts';
import { packageVersion } from '../package-file.ts';
import { readAssets } from './assets.ts';
import { openBrowser } from './browser.ts';
import { serve } from './serve.ts';
import { ShownHome } from './shown-home.ts';
import { starter, untilOver } from './until-over.ts';

/** Shows the home in a browser until its terminal is closed. Returns the exit code. */
export async function show(
  context: Context,
  { port, open }: { readonly port: number; readonly open: boolean },
): Promise<number> {
  const { io, status } = context;
  const { signal } = io;
  // It can end as soon as it has the address.
  const started = starter();
  using home = new ShownHome(context, packageVersion());
  // What cannot be read is no page.
  await home.read(async () => {});
  await using serving = await serve(port, {
    assets: readAssets(),
    home,
    dir: context.home.name,
    inHome: (text) => home.inHome(text),
    masked: (text) => io.masked(text),
    report: (error) => status(`Cannot answer the page: ${describeError(error).message}`),
  });
  const url = `http://127.0.0.1:${serving.port}${serving.path}`;
  await context.answer({
    json: { url, port: serving.port, pid: process.pid },
    quiet: url,
    human: url,
  });
  status(`Showing ${context.home.name} until Ctrl-C. The address lets in one browser.`);
  if (open)
    await openBrowser(url).catch(({ message }: Error) =>
      status(`Cannot open a browser (${message}): open the address in one`),
    );
  await untilOver(io, started);
  return signal.aborted ? exit.interrupted : exit.done;
}
