// What a page gets in place of the modules that only Node has (`browser` in package.json), where they are imported for their effects.

export {};
