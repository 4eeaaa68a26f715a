// Prints what of published suites passes (npm run conformance), or what becomes of modules as compilers and optimizers
// write them (npm run conformance -- modules [GUEST...]).
const [suite, ...args] = process.argv.slice(2);
if (suite === undefined) {
  await import('./published-suites.ts');
} else if (suite === 'modules') {
  const { printModules } = await import('./modules/print-modules.ts');
  process.exitCode = await printModules(args);
} else {
  console.error(`error: no suite is called ${suite}; there is modules, and without a name all others`);
  process.exitCode = 2;
}
