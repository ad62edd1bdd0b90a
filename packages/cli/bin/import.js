// Compiled code cannot import: the files of the bundle import by this function, which Node.js compiles.
module.exports = (specifier) => import(specifier);
