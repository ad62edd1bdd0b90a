                                                   

/** Lifecycle, task and delivery, as JSON. */
                                                                          

/** What the lines about one session have said so far. */
                
                                                                                            
                                        
                                                                        
                         
 

/** What is beside a line. */
                  
                                                   
                        
                                                       
                               
 

/**
 * Compares the fields of lines with each other: all lines about a session describe the same one, and each changes only
 * what its act changes.
 */
export class LinesBySession {
           #told = new Map              ();
  #isComplete = true;

  /** Receives that a line is missing: what it said, and of which session, is not known. */
  missing()       {
    this.#isComplete = false;
  }

  /** Receives a line that proves nothing. */
  skip(tape        )       {
    const { identity } = this.#told.get(tape) ?? {};
    this.#told.set(tape, identity === undefined ? {} : { identity });
  }

  /** Receives the lines in order; returns the fields that contradict each other, or earlier lines. */
  compare(line            , { tape, into }        )                    {
    const told = this.#told.get(tape);
    const found = repeated.map((field) => JSON.stringify(line[field] ?? null));
    const { identity = found } = told ?? {};
    const state = stateOf(line);
    this.#told.set(tape, { identity, state });
    return [
      ...(line.v === 1 ? [] : ['v']),
      ...repeated.filter((_, n) => identity[n] !== found[n]),
      ...(line.status === (line.delivery ?? line.task ?? line.lifecycle) ? [] : ['status']),
      ...((line.into_session_id ?? null) === (line.into === undefined ? null : into)
        ? []
        : ['into_session_id']),
      ...(this.#isComplete ? actFaults(line, { told, state }) : []),
    ];
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

function stateOf(line            )        {
  const [lifecycle = '', task = '', delivery = ''] = axes.map((axis) => JSON.stringify(line[axis] ?? null));
  return [lifecycle, task, delivery];
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
