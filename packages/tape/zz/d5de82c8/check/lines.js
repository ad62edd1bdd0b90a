import { sha256 } from '../entry/hash.js';
                                                   

/** Lifecycle, task and delivery, as JSON. */
                                                                          

/** The first line about a session that proves something. */
                 
                     
                                                               
                            
 

/** What the lines about one session have said so far. */
                
                                    
                                                                        
                                    
 

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
    this.#told.set(tape, { first: this.#told.get(tape)?.first, state: undefined });
  }

  /** Receives the lines in order; returns the fields that contradict each other, or earlier lines. */
  compare(line            , { g, tape, into }        )                    {
    const told = this.#told.get(tape);
    const identity = identityOf(line);
    const { first = { g, identity } } = told ?? {};
    const state = this.#stateOf(line);
    this.#told.set(tape, { first, state });
    return [
      ...(line.v === 1 ? [] : ['v']),
      ...(first.identity === identity ? [] : otherFields(this.#lineAt(first.g), line)),
      ...(line.status === (line.delivery ?? line.task ?? line.lifecycle) ? [] : ['status']),
      ...((line.into_session_id ?? null) === (line.into === undefined ? null : into)
        ? []
        : ['into_session_id']),
      ...(this.#isComplete ? actFaults(line, { told, state }) : []),
    ];
  }

  /** The state in a line; the same array for the same state, of which there are few. */
  #stateOf(line            )        {
    const [lifecycle = '', task = '', delivery = ''] = axes.map((axis) => JSON.stringify(line[axis] ?? null));
    const key = `${lifecycle} ${task} ${delivery}`;
    const state = this.#states.get(key) ?? [lifecycle, task, delivery];
    this.#states.set(key, state);
    return state;
  }
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
  return repeated.filter(
    (field) => JSON.stringify(first[field] ?? null) !== JSON.stringify(line[field] ?? null),
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
  { told, state }                                                            ,
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
