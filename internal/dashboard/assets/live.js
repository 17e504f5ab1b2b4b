// Reads the page again when something has changed, and copies commands. Without it the
// pages are whole, and are read again by hand.
const main = document.getElementById('main')
const lost = document.getElementById('lost')

function offerCopies() {
  for (const button of main.querySelectorAll('button.copy')) {
    button.hidden = false
    button.onclick = async () => {
      await navigator.clipboard.writeText(button.parentElement.querySelector('code').textContent)
      button.textContent = 'Copied'
    }
  }
}

// again takes over what the page says now, and is false if it is not to be read again any more.
// What is unfolded stays so, and the focus stays where it is.
async function again() {
  const answer = await fetch(location.href, { headers: { Accept: 'text/html' } })
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
  const next = page.getElementById('main')
  const open = [...main.querySelectorAll('details[open]')].map((d) => d.id)
  const focused = document.activeElement?.getAttribute?.('href')
  main.replaceChildren(...next.childNodes)
  for (const d of main.querySelectorAll('details')) d.open = open.includes(d.id)
  if (focused && document.activeElement === document.body) main.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus()
  offerCopies()
  return answer.status >= 500 || 'version' in next.dataset
}

function say(text) {
  lost.textContent = text
  lost.hidden = text === ''
}

if (main.dataset.version) {
  let pending = false
  const source = new EventSource(`/live?version=${main.dataset.version}`)
  source.addEventListener('changed', async () => {
    if (pending) return
    pending = true
    try {
      if (!(await again())) source.close()
    } finally {
      pending = false
    }
  })
  source.onopen = () => say('')
  source.onerror = () => {
    if (lost.hidden) say(`The connection was lost at ${new Date().toLocaleTimeString()}; what you see is from before.`)
  }
}
offerCopies()
