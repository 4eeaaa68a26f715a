// Rewrites a hostile module in functions of 6 KB, and prints its size, and the memory that rewriting took:
// rewrite-hostile.ts FUNCTIONS
import { rewriteModule } from '../instrumentation/rewrite.ts';
import { HARMLESS, hostileModule } from './hostile-module.ts';
import { peakMemory } from './peak-memory.ts';

const PAGES = 1024;

/** `loop end` grows most. */
const shape = { ...HARMLESS, functions: Number(process.argv[2]), blocks: 'loop', sequence: 2_000 } as const;
rewriteModule(hostileModule(HARMLESS), PAGES, true);
const module = hostileModule(shape, Infinity);
const before = process.memoryUsage.rss();
rewriteModule(module, PAGES, true);
const peakBytes = peakMemory() - before;
process.stdout.write(JSON.stringify({ bytes: module.length, peakBytes }));
