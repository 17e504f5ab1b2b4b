import { existsSync } from 'node:fs'

// chromium is the path of the browser in which pages are tested.
export function chromium() {
  const paths = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].filter(Boolean)
  const found = paths.find((path) => existsSync(path))
  if (!found) throw new Error('no Chromium found: install it (Debian: apt-get install chromium), or name it in CHROMIUM')
  return found
}
