// The user of a registry in tests.
export const USER = 'ci';
export const PASSWORD = 'correct horse';
