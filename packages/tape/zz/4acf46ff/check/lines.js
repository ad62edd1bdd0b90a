import { sha256 } from '../entry/hash.js';
                                                         

/** Lifecycle, task and delivery, as JSON. */
                                                                          

/** What the lines about one session have said so far: one object for each session, since there may be many. */
                
                                                                                                         
                        
                               
                                                                        
                           
 

/** What is beside a line. */
                  
                    
                     
                                                   
                        
                                                       
                               
 

/**
 * Compares the fields of lines with each other: all lines about a session describe the same one, and each changes only
 * what its act changes. Keeps little of each session, since there may be hundreds of thousands.
 */
export class LinesBySession {
           #lineAt                           ;
           #told = new Map              ();
           #states = new Map               ();
  #isComplete = true;

  /** @param lineAt reads a line again that was compared before */
  constructor(lineAt                           ) {
    this.#lineAt = lineAt;
  }

  /** Receives that a line is missing: what it said, and of which session, is not known. */
  missing()       {
    this.#isComplete = false;
  }

  /** Receives a line that proves nothing. */
  skip(tape        )       {
    const told = this.#told.get(tape);
    if (told === undefined) this.#told.set(tape, { g: undefined, identity: undefined, state: undefined });
    else told.state = undefined;
  }

  /** Receives the lines in order; returns the fields that contradict each other, or earlier lines. */
  compare(line            , { g, tape, into }        )                    {
    const told = this.#told.get(tape);
    const identity = identityOf(line);
    const state = this.#kept(stateOf(line));
    const faults = [
      ...ownFaults(line, into),
      ...(told?.g === undefined || told.identity === identity ? [] : otherFields(this.#lineAt(told.g), line)),
      ...(this.#isComplete ? actFaults(line, { told, state }) : []),
    ];
    if (told === undefined) this.#told.set(tape, { g, identity, state });
    else {
      told.g ??= g;
      told.identity ??= identity;
      told.state = state;
    }
    return faults;
  }

  /** The same array for the same state, of which there are few. */
  #kept(state       )        {
    const key = state.join(' ');
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    this.#states.set(key, state);
    return state;
  }
}

/** Whether all lines about one session, in order, agree with each other: `LinesBySession` finds nothing in them. */
export function agree(
  lines                                                                          ,
)          {
  const [first] = lines;
  let told                                 ;
  for (const { fields, into } of lines) {
    const state = stateOf(fields);
    const others = first === undefined ? [] : otherFields(first.fields, fields);
    if (others.length > 0 || ownFaults(fields, into).length > 0) return false;
    if (actFaults(fields, { told, state }).length > 0) return false;
    told = { state };
  }
  return true;
}

/** Returns the fields of a line that contradict itself, or what is beside it. */
function ownFaults(line            , into               )                    {
  return [
    ...(line.v === 1 ? [] : ['v']),
    ...(line.status === (line.delivery ?? line.task ?? line.lifecycle) ? [] : ['status']),
    ...((line.into_session_id ?? null) === (line.into === undefined ? null : into)
      ? []
      : ['into_session_id']),
  ];
}

function stateOf({ lifecycle, task, delivery }            )        {
  return [textOf(lifecycle), textOf(task), textOf(delivery)];
}

function textOf(value                  )         {
  return JSON.stringify(value ?? null);
}

/** Fields that are the same on each line about a session. */
const repeated = [
  'session_id',
  'parent_session_id',
  'from_anchor',
  'created_at',
  'parent',
  'tape',
  'kind',
]         ;

const axes = ['lifecycle', 'task', 'delivery']         ;

/** A digest in 16 bytes: a part of its hex would keep the whole. */
function identityOf(line            )         {
  const digest = sha256(JSON.stringify(repeated.map((field) => line[field] ?? null)));
  return Buffer.from(digest, 'hex').toString('latin1', 0, 16);
}

function otherFields(first            , line            )                    {
  if (first === line) return [];
  return repeated.filter(
    (field) => first[field] !== line[field] && textOf(first[field]) !== textOf(line[field]),
  );
}

/** What the acts set that have one value to set. */
const set                                                                   = {
  archive: ['lifecycle', '"archived"'],
  merge: ['delivery', '"merged"'],
  discard: ['delivery', '"discarded"'],
};

/** Returns what the act of a line cannot have made of the state before it. */
function actFaults(
  { type, parent }            ,
  { told, state }                                                                           ,
)                    {
  const isFirst = type === (parent === null ? 'session' : 'fork');
  if (told === undefined) return [...(isFirst ? [] : ['type']), ...(state[2] === 'null' ? [] : ['delivery'])];
  if (type === 'session' || type === 'fork') return told.state === undefined ? [] : ['type'];
  const [axis, value] = set[String(type)] ?? [];
  const wrong = axes.filter((one, n) => one === axis && state[n] !== value);
  const { state: before } = told;
  if (before === undefined) return wrong;
  const moved = axes.filter((one, n) => one !== axis && before[n] !== state[n]);
  const isStatus = type === 'status' && moved.length === 1 && moved[0] !== 'delivery';
  return isStatus ? [] : [...wrong, ...moved];
}
