// A process on a module cache that it shares with others: node cache-process.ts FOLDER MAX_BYTES COMMAND.
//   serve NAME...   stores modules of these names, and has them serve until the process is ended
//   fill SIZE       stores modules of this size without end
//   store NAME SIZE stores one module, and prints `stored` or the code of the error
import { randomUUID } from 'node:crypto';
import { digestOf } from '../reference/digest.ts';
import { ModuleError } from '../reference/errors.ts';
import { ModuleCache } from '../cache/module-cache.ts';
import { ModulesInUse } from '../cache/modules-in-use.ts';
import { testModule } from './test-module.ts';

const [dir = '', maxBytes = '', command, ...args] = process.argv.slice(2);
const cache = new ModuleCache(dir, { maxModuleBytes: 1 << 30, maxBytes: Number(maxBytes) });

async function store(module: Uint8Array): Promise<string> {
  const digest = digestOf(module);
  await cache.write(digest, module);
  return digest;
}

switch (command) {
  case 'serve': {
    const digests = await Promise.all(args.map((name) => store(testModule(name))));
    const inUse = new ModulesInUse(dir);
    inUse.set(digests);
    await inUse.stop();
    process.stdout.write('serving\n');
    process.stdin.resume();
    break;
  }
  case 'fill':
    for (;;) {
      await store(testModule(randomUUID().padEnd(Number(args[0]))));
      process.stdout.write('stored\n');
    }
  case 'store': {
    const [name = '', size] = args;
    const outcome = store(testModule(name.padEnd(Number(size)))).then(
      () => 'stored',
      (error: unknown) => (error instanceof ModuleError ? error.message : String(error)),
    );
    process.stdout.write(`${await outcome}\n`);
    break;
  }
  default:
    throw new Error(`no command ${command}`);
}
