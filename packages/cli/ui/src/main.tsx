import { render } from 'preact';
import { App } from './app.tsx';
import { embeddedData } from './data/embedded.ts';
import { liveData } from './data/live.ts';
import { NotAnswered } from './data/not-answered.ts';
import { embeddedIn } from './data/read-file.ts';
import { Loading } from './parts/loading.tsx';
import { Refused } from './parts/refused.tsx';
import { showKeptTheme } from './parts/theme.ts';

/** After how many milliseconds the page asks again by itself for a home that was not answered. */
const againMs = 2_000;

/** Draws the page, of the data inside of this file or of the server that sent it. */
function start(place: HTMLElement): void {
  let isDrawn = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const ask = async () => {
    clearTimeout(timer);
    try {
      const file = await embeddedIn(document);
      const data = file === undefined ? liveData() : embeddedData(file);
      const home = await data.home();
      // It may have been asked twice.
      if (!isDrawn) render(<App {...{ data, home }} />, place);
      isDrawn = true;
    } catch (error) {
      if (isDrawn) return;
      render(
        <main>
          <Refused {...{ error, again }} />
        </main>,
        place,
      );
      clearTimeout(timer);
      if (mayCome(error)) timer = setTimeout(() => void ask(), againMs);
    }
  };
  const again = () => {
    render(
      <main>
        <Loading again={again} />
      </main>,
      place,
    );
    void ask();
  };
  showKeptTheme();
  again();
}

/** Whether what was refused may be answered later: not by a file, nor by a server that this browser may not ask. */
function mayCome(error: unknown): boolean {
  return error instanceof NotAnswered && error.code !== 'UI_NOT_ENTERED';
}

const place = document.getElementById('page');
if (place !== null) start(place);
