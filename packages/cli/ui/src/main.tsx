import { render } from 'preact';
import { App } from './app.tsx';
import { embeddedData } from './data/embedded.ts';
import { liveData } from './data/live.ts';
import { embeddedIn } from './data/read-file.ts';
import { Refused } from './parts/refused.tsx';
import { showKeptTheme } from './parts/theme.ts';

/** Draws the page, of the data inside of this file or of the server that sent it. */
async function start(place: HTMLElement): Promise<void> {
  showKeptTheme();
  try {
    const file = await embeddedIn(document);
    const data = file === undefined ? liveData() : embeddedData(file);
    render(<App data={data} home={await data.home()} />, place);
  } catch (error) {
    render(<Refused error={error} />, place);
  }
}

const place = document.getElementById('page');
if (place !== null) void start(place);
