                                            

/** A call of a method of a store. */
                            
                                      
                          
                                    
                                                                    
                              
                                       
                                                          
 

/**
 * Returns a store whose calls all go through `around`, which returns the answer: to wait, to retry, to count or
 * to refuse. Settings and the methods themselves stay those of the wrapped store.
 */
export function wrapStore                         (
  store       ,
  around                              ,
)        {
  return wrapped(store, '', around);
}

function wrapped                  (target   , path        , around                              )    {
  const groups = new Map                     ();
  return new Proxy(target, {
    get: (_, property) => {
      const value          = Reflect.get(target, property, target);
      if (typeof value === 'function') {
        const method = path + String(property);
        const actWith = (args                    ) => Reflect.apply(value, target, args);
        return (...args                    ) => around({ method, args, act: () => actWith(args), actWith });
      }
      if (typeof value !== 'object' || value === null) return value;
      const group = groups.get(property) ?? wrapped(value, `${String(property)}.`, around);
      groups.set(property, group);
      return group;
    },
    set: (_, property, value) => Reflect.set(target, property, value, target),
  });
}
