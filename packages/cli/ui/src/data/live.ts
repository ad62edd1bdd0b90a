import type { PageData, Refusal } from '../../../src/page/data.ts';
import type { Asks } from './asks.ts';
import { followEvents } from './events.ts';
import { NotAnswered } from './not-answered.ts';

/** The methods of the data, each of which is a route of the server. */
type Method = Exclude<keyof PageData, 'follow'>;

/** The data of a home that `tape ui` serves. */
export function liveData(base = 'api/'): Asks {
  const ask =
    <T>(method: Method) =>
    async (query: object = {}): Promise<T> =>
      await answerTo<T>(`${base}${method}${queryText(query)}`);
  return {
    has: () => true,
    home: ask('home'),
    sessions: ask('sessions'),
    lineage: ask('lineage'),
    session: ask('session'),
    timeline: ask('timeline'),
    timelineNow: (query) => answerNow(`${base}timeline${queryText(query)}`),
    seen: ask('seen'),
    parting: ask('parting'),
    trace: ask('trace'),
    usage: ask('usage'),
    findings: ask('findings'),
    follow: followEvents(base),
  };
}

const unreachable: Refusal = {
  code: 'UI_UNREACHABLE',
  message: 'The server of this page does not answer: tape ui has ended',
  hint: 'start it again with tape ui, and open the address that it prints',
};

/** Waits for an answer as nothing else on the page does. */
function answerNow<T>(address: string): T {
  const request = new XMLHttpRequest();
  request.open('GET', address, false);
  try {
    request.send();
  } catch {
    throw new NotAnswered(unreachable);
  }
  if (request.status === 200) return JSON.parse(request.responseText) as T;
  throw new NotAnswered(refusalIn(request.status, request.responseText));
}

async function answerTo<T>(address: string): Promise<T> {
  let response: Response;
  try {
    response = await fetch(address, { credentials: 'same-origin', cache: 'no-store' });
  } catch {
    throw new NotAnswered(unreachable);
  }
  if (response.ok) return (await response.json()) as T;
  throw new NotAnswered(refusalIn(response.status, await response.text().catch(() => '')));
}

function refusalIn(status: number, text: string): Refusal {
  try {
    const { code, message, hint } = JSON.parse(text) as Partial<Refusal>;
    if (code !== undefined && message !== undefined)
      return { code, message, ...(hint !== undefined && { hint }) };
  } catch {
    // It is no JSON.
  }
  return { code: `HTTP_${status}`, message: `The server answered ${status}` };
}

/** A query as a part of an address: lists with commas, and nothing for what is not said. */
function queryText(query: object): string {
  const said = Object.entries(query).flatMap(([key, value]: [string, unknown]) => {
    const text = value === true ? '1' : value === false || value === undefined ? '' : String(value);
    return text === '' ? [] : [[key, text]];
  });
  return said.length === 0 ? '' : `?${new URLSearchParams(said)}`;
}
