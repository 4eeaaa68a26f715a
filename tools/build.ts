// Builds the published package: JavaScript, declarations and data files in dist/. `npm run build`.
import { spawnSync } from 'node:child_process';
import { copyFileSync, globSync, rmSync } from 'node:fs';
import { join } from 'node:path';
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
    copyFileSync(join(root, 'src', file), join(root, 'dist', file));
  }
}
process.exit(tsc.status ?? 1);
