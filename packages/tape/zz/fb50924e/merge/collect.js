import { artifactOf,                       } from '../entry/artifact.js';
                                                    
import { isObject,                            } from '../entry/json.js';
                                              
import {                visible } from '../tape/interval.js';
import { readEntries } from '../tape/read.js';
                                               
import {
               
  afterEntry,
  atRangeStart,
                   
                 
  noAnswers,
} from './answer.js';

/**
 * Version of the rules by which the text is collected, also those of `answer.ts`. It changes when the same entries
 * would give another text, or other facts about it, and the schema changes with it: in one schema, a mark with another version is a forgery.
 */
export const textVersion = 1;

/** The outcome of a child over a range of its own entries. */
                            
                                                                                                      
                        
                                                               
                        
                                                                                                               
                                    
                                                                           
                          
                                                                                                                  
                                 
                                         
     
                                                                                                     
                                                           
     
                             
                                                                                                
                                                  
                              
 

/**
 * Collects a child's result from its own entries: an explicit `result` entry, else the model's last answer in
 * all its pieces, else its error. Reads only, and runs before the merge's transaction.
 */
export function collectResult(db    , child         , [from, to]                     )            {
  let result                   ;
  let failed                       ;
  let first                    ;
  let last = 0;
  let complete = true;
  let recorded                              ;
  const usage = new Map                ();
  const shown = [...visible(db, child, to)].reverse();
  let answers = answersBefore(db, child, { from, shown });
  for (const entry of readEntries(db, child, { from, to, own: true })) {
    first ??= entry.at;
    last = entry.at;
    if (entry.kind === 'tool-result') complete &&= isObject(entry.meta.paths);
    if (entry.kind === 'message') addUsage(usage, entry.meta.usage);
    // A rewind on the child's tape does not undo changes to its files.
    const artifact = artifactOf(entry);
    if (artifact !== undefined) {
      recorded = { seq: entry.seq, artifact };
      complete = true;
    }
    // Rewound entries count for usage and duration, but not for the result.
    while (shown[0] !== undefined && entry.seq > shown[0].hi) shown.shift();
    if (shown[0] === undefined || entry.seq <= shown[0].lo) continue;
    // A redacted result is no result.
    if (entry.kind === 'result') result = entry.payload === null ? undefined : entry;
    else if (entry.kind === 'event') {
      failed = endOf(entry) ?? failed;
      if (entry.name === resultRefused) {
        result = undefined;
        answers = noAnswers;
      }
    } else {
      answers = afterEntry(answers, entry);
      failed = filteredEnd(entry) ?? failed;
    }
  }
  const { last: answer } = answers;
  const unfinished = failed !== undefined && failed.seq >= (answer?.seq ?? 0) ? failed : undefined;
  const value = result === undefined ? undefined : resultValue(result.payload);
  const chosen =
    result !== undefined && value !== undefined
      ? { seq: result.seq, text: typeof value === 'string' ? value : JSON.stringify(value) }
      : joinText(withRest(answer, child), unfinished);
  return {
    text: chosen?.text ?? emptyResult,
    ...(value !== undefined && { value }),
    textSeq: chosen?.seq,
    ...(value === undefined && answer !== undefined && placeOf(answer)),
    usage: usage.size === 0 ? undefined : Object.fromEntries(usage),
    complete,
    recorded,
    durationMs: first === undefined ? 0 : last - first,
  };
}

/** How many entries before a range are searched for the pieces of an answer that goes on in it. */
export const backMax = 50;

/** The answers before a range of the child's own entries, as far as they go on in it. */
function answersBefore(
  db    ,
  child         ,
  { from, shown }                                                             ,
)          {
  if (from <= child.base_seq + 1) return noAnswers;
  let answers = noAnswers;
  for (const entry of readEntries(db, child, { to: from - 1, own: true, last: backMax }))
    if (shown.some(({ lo, hi }) => entry.seq > lo && entry.seq <= hi)) answers = afterEntry(answers, entry);
  return atRangeStart(answers);
}

/** The first piece of an answer in pieces, and the pieces that it lacks. */
function placeOf({ from, seq, rest }             )                                       {
  return { ...(from < seq && { textFrom: from }), ...(rest.length > 0 && { rest }) };
}

/** An answer behind a line that names the pieces before it that are not part of its text. */
function withRest(answer                         , { name }         )                        {
  if (answer === undefined || answer.rest.length === 0) return answer;
  const where = answer.rest.map((seq) => `tape show ${name}@${seq}`).join('; ');
  return { seq: answer.seq, text: `[An interrupted answer came before this one: ${where}]\n${answer.text}` };
}

function joinText(answer                       , failed                       )                        {
  if (answer === undefined || failed === undefined) return answer ?? failed;
  return { seq: failed.seq, text: `${answer.text}\n\n${failed.text}` };
}

function resultValue(payload      )       {
  return isObject(payload) && 'value' in payload ? (payload.value ?? null) : payload;
}

/** Returns the reason that a run recorded for an early end. */
function endOf({ seq, name = '', payload }       )                        {
  const label = endLabels[name];
  if (label === undefined || !isObject(payload) || typeof payload.message !== 'string') return undefined;
  return { seq, text: `${label}: ${payload.message}` };
}

/** Returns the reason for the end of an answer that a content filter cut off. */
function filteredEnd({ seq, kind, payload, meta }       )                        {
  const isAnswer = kind === 'message' && isObject(payload) && payload.role === 'assistant';
  if (!isAnswer || meta.finish !== 'content-filter') return undefined;
  return { seq, text: 'Filtered: a content filter cut off the answer' };
}

/** The text that a parent gets of a child without a result or an answer. */
export const emptyResult = '(no result)';

/** Name of the event that records why an earlier result is invalid. This error then is the child's result. */
export const resultRefused = 'result/refused';

const endLabels                                   = {
  'run/error': 'Error',
  'run/halted': 'Halted',
  [resultRefused]: 'Error',
};

/** Adds the numbers of a usage; one that would make a sum infinite, which no entry can hold, is left out. */
function addUsage(sum                     , usage                  )       {
  if (!isObject(usage)) return;
  for (const [name, value] of Object.entries(usage)) {
    const total = typeof value === 'number' ? (sum.get(name) ?? 0) + value : Number.NaN;
    if (Number.isFinite(total)) sum.set(name, total);
  }
}
