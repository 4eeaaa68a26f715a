// Builds the published package: JavaScript and data files in dist/. `npm run build`.
import { spawnSync } from 'node:child_process';
import { copyFileSync, globSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
rmSync(join(root, 'dist'), { recursive: true, force: true });
const tsc = spawnSync(
  process.execPath,
  [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', 'tsconfig.build.json'],
  { cwd: root, stdio: 'inherit' },
);
if (tsc.status === 0) {
  for (const file of globSync('{**/*.br,engine/network-policy/catalogue/*.yaml}', { cwd: join(root, 'src') })) {
    const copy = join(root, 'dist', file);
    mkdirSync(dirname(copy), { recursive: true });
    copyFileSync(join(root, 'src', file), copy);
  }
}
process.exit(tsc.status ?? 1);
