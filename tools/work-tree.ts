import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from './generated-files.ts';

/** Copies what git would commit. The dependencies are linked, each by itself, so that nothing can write into them. */
export function copyWorkTree(copy: string): void {
  for (const file of git('ls-files', '-z', '--cached', '--others', '--exclude-standard').split('\0')) {
    if (file !== '' && existsSync(join(root, file))) {
      mkdirSync(dirname(join(copy, file)), { recursive: true });
      copyFileSync(join(root, file), join(copy, file));
    }
  }
  mkdirSync(join(copy, 'node_modules'));
  for (const name of readdirSync(join(root, 'node_modules'))) {
    symlinkSync(join(root, 'node_modules', name), join(copy, 'node_modules', name));
  }
  rmSync(join(copy, 'node_modules', '.portcullis-lock.json'), { force: true });
  copyFileSync(join(root, 'package-lock.json'), join(copy, 'node_modules', '.portcullis-lock.json'));
}

/** The output of a git command in the repository, without the last line break. */
export function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 }).replace(/\n$/, '');
}
