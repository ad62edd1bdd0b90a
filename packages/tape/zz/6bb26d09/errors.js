/**
 * The base class of the errors of all packages, and those of tapes. Loads nothing else.
 *
 * @module @tapedeck/tape/errors
 */

/** An error with a stable code. Its message says what could not be done, to what, and why. */
export          class CodedError                      extends Error {
           code      ;
  /** Facts about the failure, for programs: near names, the lease holder, a line number. */
           data                                   ;

  constructor(
    code      ,
    message        ,
    {
      data = {},
      cause,
    }                                                                                  = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.data = data;
  }
}

/** Errors of tapes. Callers branch on the code, never on the message. */
                           
                     
                    
                 
                  
                   
                    
                     
                    
                     
                     
                 
                       
                   
                   
                     
               
                 
                    
                 
                 
                      
                        
                       
                       
                       
                     
                  
             
                     

/**
 * An error of a store, a tape or a view. `code` says which.
 *
 * @example
 * ```ts
 * import { openTapeStore, TapeError, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * try {
 *   store.entries.append('mian', [user('Plan the release.')]);
 * } catch (error) {
 *   if (!(error instanceof TapeError)) throw error;
 *   console.log(error.code); // TAPE_NO_SESSION
 * }
 * ```
 */
export class TapeError extends CodedError                {
                    name = 'TapeError';
}
