export const MINIMUM_NODE: readonly [major: number, minor: number];
export const NODE_FLAGS: readonly string[];
export function findNode(): string | undefined;
