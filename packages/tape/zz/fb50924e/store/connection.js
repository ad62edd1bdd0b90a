                                         
import { parseBase } from '../entry/name.js';
                                                                
import { drainOutbox,                  } from '../lineage/outbox.js';
                                              
                                                
import { findTape, getTape } from '../tape/find.js';
import {                  getHead,               } from '../tape/head.js';
import {             writeEpoch } from '../tape/lease.js';
                                                    

/** The graph file, as the updates of one connection left it. */
                                 
                                                      
                            
                                                                       
                            
                                                         
                                    
 

/** An open database with what all groups of a store use. */
export class Connection {
           db    ;
           writer        ;
  /** Prefix of the names of the tapes. */
           realm        ;
           readonly         ;
           #journal                     ;
  #graphFile                 = { lagging: false, blocked: false, aside: [] };
  /** A file was set aside, and no receipt has said so. */
  #asideUnreported = false;

  constructor(
    writer        ,
    o                                                                                              ,
  ) {
    this.db = writer.db;
    this.writer = writer;
    this.realm = parseBase(o.base);
    this.readonly = o.readonly;
    this.#journal = o.journal;
  }

  now()         {
    return this.writer.sources.now();
  }

  /** The clocks that leases expire by. */
  get clock()        {
    return this.writer.sources;
  }

  /** @throws TAPE_NO_SESSION */
  need(ref     )          {
    return getTape(this.db, this.realm, ref);
  }

  /** @throws TAPE_NO_SESSION */
  head(ref     )             {
    return getHead(this.db, this.realm, ref);
  }

  /** Returns the name of a session when an error message needs it; the caller's word, if there is no such session. */
  named(ref     )               {
    return () => findTape(this.db, this.realm, ref)?.name ?? String(ref);
  }

  /**
   * Returns the epoch to write a tape under.
   * @throws TAPE_BUSY, TAPE_FENCED
   */
  epoch(tape          , lease                   )         {
    return writeEpoch(this.db, tape, { lease, clock: this.clock });
  }

  /** What this connection has found and done to the graph file since it was opened. */
  get graphFile()                 {
    return this.#graphFile;
  }

  /**
   * Brings the graph file up to date: appends missing lines, and sets aside a file with other lines. A file that
   * cannot be written now only lags.
   * @throws GRAPH_DIVERGED
   */
  updateGraph()       {
    this.#update(/^GRAPH_IO$/);
  }

  /**
   * Updates the graph file after an act, and returns what the act's receipt says about it. The act is committed,
   * so a failure of the database only reports that the file lags, too.
   */
  drainOutbox()               {
    this.#update(/^(?:TAPE|GRAPH)_/);
    return this.graphReceipt();
  }

  /** What a receipt says about the graph file: that it lags, and, once, that it was found to differ. */
  graphReceipt()               {
    const { lagging, blocked } = this.#graphFile;
    const diverged = this.#asideUnreported || blocked;
    this.#asideUnreported = false;
    return {
      ...(lagging && ({ graphLagging: true }         )),
      ...(diverged && ({ graphDiverged: true }         )),
    };
  }

  /** Updates the graph file. An error whose code matches `lagging` says only that it lags. */
  #update(lagging        )       {
    if (this.#journal === undefined) return;
    try {
      this.#note(drainOutbox(this.db, this.#journal));
    } catch (error) {
      const { code } = error                      ;
      if (typeof code !== 'string' || !lagging.test(code)) throw error;
      this.#graphFile = { ...this.#graphFile, lagging: true };
    }
  }

  #note({ aside, ...update }             )       {
    const blocked = update.blocked === true;
    const before = this.#graphFile;
    if (aside !== undefined) this.#asideUnreported = true;
    this.#graphFile = {
      lagging: blocked || update.lagging === true,
      blocked,
      aside: aside === undefined ? before.aside : [...before.aside, aside],
    };
  }
}
