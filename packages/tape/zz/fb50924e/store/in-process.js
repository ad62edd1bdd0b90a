/**
 * A group of methods as a store in this process has it: each method returns its value, and never a promise.
 */
                                
                                                                                               
                                                                                       
                    
  
